import Theme from 'vitepress/theme';
import './style.css';

export default Theme;
